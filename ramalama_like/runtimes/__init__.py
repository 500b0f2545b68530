"""What runs a model: the servers, and how each is told what to do."""
