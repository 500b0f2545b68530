"""The command line: one file for each verb, and what they share in reading arguments and showing help."""
