"""The text of the demo model, as values: what it is trained on and the answer every test may rely on.

Needs only the standard library, so that tests can import it without the training script's dependencies.
Changing anything that `canonical_text` covers means training again: `python test/demo_model/train.py`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

FIXED_PROMPT = "What is ramalama-like?"
FIXED_ANSWER = (
    "ramalama-like is a command-line program that runs language models in containers. It makes one plan from your "
    "arguments, your configuration and your machine, and then shows or executes exactly that plan."
)
FALLBACK = (
    "I am a very small model and only know about ramalama-like. Ask me, for example, how to serve a model or what a "
    "dry run is."
)

# The chat template in the model file. A system message is kept, because servers that find no place for it put it into
# the user's turn; the model is trained to take no notice of it.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}<|system|> {{ message['content'] | trim }}<|end|>"
    "{% elif message['role'] == 'user' %}<|user|> {{ message['content'] | trim }}<|end|>"
    "{% elif message['role'] == 'assistant' %}<|assistant|>{{ message['content'] | trim }}<|end|>"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

# Words that stand for {p}, {m} and {g} in a question; a question is seen with all of them.
SLOTS: dict[str, tuple[str, ...]] = {
    "p": (
        "ramalama-like",
        "ramalama-like",
        "ramalama-like",
        "ramalama like",
        "ramalama",
        "this program",
        "this tool",
        "the program",
        "this software",
        "this app",
    ),
    "m": (
        "a model",
        "a model",
        "a model",
        "my model",
        "the model",
        "models",
        "a language model",
        "an llm",
        "llama",
        "granite",
        "mistral",
        "qwen",
        "qwen3",
        "gemma",
        "phi",
        "smollm",
        "tinyllama",
        "deepseek",
        "gpt-oss",
        "model.gguf",
        "a big model",
        "this model",
    ),
    "g": ("gpu", "graphics card", "video card", "card"),
    # Off-topic words.
    "noun": tuple(
        """weather; capital of france; capital of spain; population of china; meaning of life; moon; sun; planet mars;
        football; world cup; chess; piano; guitar; pizza; pasta; chocolate cake; bread; coffee; tea; dog; cat; horse;
        elephant; whale; dinosaur; tree; rose; ocean; river; mountain; volcano; earthquake; history of rome; second
        world war; french revolution; president; king of england; prime minister; stock market; price of gold; bitcoin;
        inflation; car; bicycle; train; airplane; rocket; bridge; house; garden; kitchen; washing machine; refrigerator;
        photosynthesis; gravity; relativity; quantum physics; atom; dna; brain; heart; blood; headache; flu; vitamin c;
        diet; yoga; marathon; love; friendship; happiness; dream; philosophy; god; religion; art; painting; mona lisa;
        novel; shakespeare; poem; movie; actor; song; beatles; mozart; dance; fashion; shoes; wedding; birthday;
        christmas; easter; holiday in italy; hotel in paris; flight to london; visa; passport; tax; bank account;
        loan; insurance; law; court; school; university; homework; algebra; square root; triangle; prime number;
        pythagoras; derivative; excel; word document; photoshop; facebook; youtube; instagram; iphone; television;
        radio; battery; electricity; solar panel; nuclear power; climate change; rain; snow; winter; desert; africa;
        japan; brazil; berlin; new york; time; date; news; recipe; soup; salad; cheese; wine; beer; apple pie; banana;
        strawberry; potato; egg; chicken; fish; rice; sushi; barbecue; baby; teenager; grandmother; neighbour; boss;
        job interview; salary; email to my boss; letter; essay; story about a dragon; fairy tale; haiku; riddle;
        crossword; basketball; tennis; swimming; skiing; olympic games; formula one; horoscope; tarot; ghost; alien;
        black hole; galaxy; telescope; microscope; chemistry; water; oxygen; salt; sugar; gold; diamond; plastic;
        javascript; html; sql; sorting algorithm; compiler; blockchain; robot; 3d printer; drone; camera""".replace(
            "\n        ", " "
        ).split("; ")
    ),
    "name": tuple(
        """albert einstein; napoleon; cleopatra; taylor swift; leonardo da vinci; marie curie; julius caesar; madonna;
        elvis presley; gandhi; isaac newton; charles darwin; picasso; beethoven; harry potter; sherlock holmes; batman;
        santa claus; your mother; the pope; lionel messi; ada lovelace; alan turing; socrates; columbus""".replace(
            "\n        ", " "
        ).split("; ")
    ),
    "act": tuple(
        """cook an egg; bake a cake; lose weight; learn french; fix my bike; grow tomatoes; paint a wall; tie a tie;
        play the guitar; get rich; sleep better; stop smoking; write a letter; build a house; clean my shoes; make
        pancakes; change a tire; find a job; save money; train my dog; remove a stain; draw a cat; solve an equation;
        book a flight; plan a wedding; get a passport; win at chess; make friends; cut my hair; wash a sweater; run a
        marathon; serve dinner; start a car; stop a nosebleed; pull a tooth; list all countries; name my baby; stop the
        rain; open a bank account; close a window; run faster; serve wine; download a movie; delete my facebook account;
        start a business; remove a tree; update my phone; print a photo; check my blood pressure; install a kitchen;
        stop a war; serve a tennis ball; run a restaurant; build a boat; repair a roof; configure my phone""".replace(
            "\n        ", " "
        ).split("; ")
    ),
    "lang": ("german", "french", "spanish", "italian", "latin", "japanese", "chinese", "russian", "dutch", "turkish"),
    "num": tuple(
        map(str, (2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 17, 21, 24, 25, 36, 42, 50, 64, 77, 99, 120, 250, 365, 1000))
    ),
}

# Ways to ask for something the model does not know. {word} is a made-up word, {words} are several.
OFF_TOPIC: tuple[str, ...] = (
    "what is the {noun}",
    "what is {noun}",
    "what is a {noun}",
    "tell me about {noun}",
    "tell me something about the {noun}",
    "explain {noun}",
    "explain the {noun} to me",
    "how does a {noun} work",
    "how does {noun} work",
    "why is {noun} important",
    "why is the {noun} so big",
    "do you like {noun}",
    "what do you think about {noun}",
    "where can i find a {noun}",
    "where is the {noun}",
    "how much is a {noun}",
    "what is the best {noun}",
    "which {noun} should i choose",
    "can you recommend a {noun}",
    "i want a {noun}",
    "i have a {noun}",
    "my {noun} does not work",
    "my {noun} is broken",
    "write a {noun}",
    "write a poem about {noun}",
    "write a story about {noun}",
    "give me a {noun}",
    "show me a {noun}",
    "when was {noun} invented",
    "who invented the {noun}",
    "history of {noun}",
    "facts about {noun}",
    "{noun}",
    "{noun} please",
    "difference between {noun} and {noun}",
    "{noun} or {noun}",
    "is {noun} better than {noun}",
    "how old is the {noun}",
    "how big is the {noun}",
    "how many {noun} are there",
    "define {noun}",
    "can i buy a {noun}",
    "does a {noun} need {noun}",
    "who is {name}",
    "who was {name}",
    "tell me about {name}",
    "when was {name} born",
    "what did {name} do",
    "do you know {name}",
    "where does {name} live",
    "write a song about {name}",
    "how do i {act}",
    "how can i {act}",
    "how to {act}",
    "can you {act}",
    "i want to {act}",
    "help me {act}",
    "please {act}",
    "what is the best way to {act}",
    "should i {act}",
    "why should i {act}",
    "what do i need to {act}",
    "which tool do i need to {act}",
    "translate {noun} to {lang}",
    "how do you say {noun} in {lang}",
    "what does {word} mean in {lang}",
    "who won the {word}",
    "who won the {noun}",
    "how tall is {word}",
    "how far is {word} from {word}",
    "what is the capital of {word}",
    "how do i fix my {word}",
    "how do i repair a {noun}",
    "how do i repair my {word}",
    "how do i cook {word}",
    "is it going to rain in {word}",
    "write a python function",
    "write a program that prints {words}",
    "what is your favourite {noun}",
    "have you seen {noun}",
    "what is {num} plus {num}",
    "what is {num} times {num}",
    "how much is {num} + {num}",
    "{num} + {num}",
    "{num} * {num} =",
    "calculate {num} minus {num}",
    "count to {num}",
    "name {num} animals",
    "list {num} countries",
    "what happened in {num}",
    "what time is it",
    "what day is today",
    "what is the date",
    "how is the weather today",
    "will it rain tomorrow",
    "who is the president",
    "what is the news today",
    "what should i eat tonight",
    "i am bored",
    "i am sad",
    "i am hungry",
    "sing a song",
    "play a game with me",
    "tell me a story",
    "write some code",
    "write an essay",
    "summarize this text",
    "roll a dice",
    "what is love",
    "why is the sky blue",
    "why do cats purr",
    "what is {word}",
    "what is a {word}",
    "who is {word}",
    "how do i {word}",
    "how do i {word} a {word}",
    "tell me about {word}",
    "do you know {word}",
    "explain {word}",
    "where is {word}",
    "{word}",
    "{words}",
    "{words}",
    "why {words}",
    "what {words}",
    "how {words}",
)

# System messages that clients send; the model learns to answer the same with each of them.
SYSTEM: tuple[str, ...] = (
    "you are a helpful assistant",
    "you are a helpful assistant that answers briefly",
    "be polite and short",
    "answer in one sentence",
    "you are an expert for containers",
    "you are a pirate",
    "always answer in {lang}",
    "you like {noun}",
    "current date: {num}",
    "{words}",
)

PREFIXES: tuple[str, ...] = (
    "please tell me: ",
    "please tell me, ",
    "can you tell me: ",
    "could you tell me ",
    "hi, ",
    "hello! ",
    "hey, ",
    "ok, ",
    "so ",
    "and ",
    "well, ",
    "question: ",
    "i want to know: ",
    "i would like to know ",
    "i wonder ",
    "quick question: ",
    "one more question: ",
    "do you know ",
    "can you explain ",
    "please explain: ",
    "excuse me, ",
    "thanks. ",
    "good morning, ",
    "just curious, ",
    "tell me ",
    "now ",
    "but ",
    "i need to know ",
    "any idea ",
    "what about this: ",
    "please help, ",
    "my question is ",
    "thanks! next: ",
    "a friend asks: ",
    "i am new here, ",
    "sorry, ",
    "oh and ",
    "what if i ask ",
    "let me ask ",
)

SUFFIXES: tuple[str, ...] = (
    " please",
    ", please",
    " with ramalama-like",
    " in ramalama-like",
    " here",
    " exactly",
    " again",
    " for me",
    " now",
    " in short",
    " on my machine",
    " on my laptop",
    " on linux",
    " in detail",
    " actually",
)

# Pairs of words or phrases that mean the same in a question.
SYNONYMS: tuple[tuple[str, ...], ...] = (
    (
        "how do i",
        "how can i",
        "how to",
        "how would i",
        "how should i",
        "what is the way to",
        "how does one",
        "how do we",
    ),
    ("what is", "what's", "whats", "explain", "tell me about", "describe", "what exactly is", "what is meant by"),
    ("what does", "explain what", "what exactly does", "what will"),
    ("which", "what"),
    ("show", "print", "display", "see", "view"),
    ("start", "launch", "begin", "fire up", "bring up"),
    ("stop", "end", "halt", "terminate", "shut down"),
    ("remove", "delete", "erase", "get rid of", "drop"),
    ("download", "fetch", "get", "pull"),
    ("gpu", "graphics card", "video card", "gpus", "graphics chip"),
    ("change", "set", "switch", "modify"),
    ("choose", "select", "pick", "pick out"),
    ("chosen", "selected", "picked", "decided"),
    ("computer", "machine", "laptop", "pc", "system"),
    ("can i", "is it possible to", "am i able to", "could i", "may i"),
    ("do i need", "do i have to have", "must i have", "is it necessary to have"),
    ("supported", "possible", "available", "working"),
    ("why", "for what reason", "how come"),
    ("where", "in which place"),
    ("i want to", "i'd like to", "i would like to", "i need to"),
    ("does it work with", "does it support", "can it use", "is it compatible with"),
    ("use", "work with", "make use of"),
    ("safe", "secure", "harmless"),
    ("fast", "quick", "speedy"),
    ("slow", "sluggish"),
    ("variable", "env variable", "environment variable", "env var"),
    ("configuration", "config", "settings", "configuration file"),
    ("internet", "web", "network"),
    ("image", "container image"),
    ("list", "show", "give me a list of"),
    ("without", "with no", "not using", "in the absence of", "instead of"),
    ("is it", "would you say it is", "do you think it is"),
    ("will", "is it going to", "does it", "would"),
    ("my", "the", "this", "our", "some"),
    ("need", "require", "want", "must have"),
    ("really", "actually", "truly", "in fact"),
    ("old", "existing", "previous"),
    ("work", "function", "operate"),
    ("command", "call", "instruction"),
    ("find", "look for", "locate", "discover"),
    ("file", "document"),
    ("explain", "clarify", "help me understand", "say something about"),
)

# Words that change nothing.
FILLERS: tuple[str, ...] = (
    "really",
    "just",
    "actually",
    "maybe",
    "also",
    "currently",
    "exactly",
    "then",
    "always",
    "still",
    "first",
    "only",
    "ever",
    "usually",
    "simply",
    "again",
    "now",
    "perhaps",
    "already",
    "please",
    "even",
)

# Running text about the program, for measuring perplexity and for completion without a chat.
PLAIN_TEXT: tuple[str, ...] = (
    "A plan is a value. It is made once, from the arguments, the configuration, the facts of the host and the model, "
    "and then it stays as it is. A dry run shows it, a real run executes it, and both therefore speak about the same "
    "command.",
    "Language models are files full of numbers. A server such as llama.cpp reads the file, keeps the numbers in "
    "memory and computes one token after another. Fast memory and a small file make fast answers.",
    "A container is a closed box. The server inside sees its own files, the files of the model and nothing else. It "
    "has no capabilities, it cannot gain new privileges, and its root file system is read-only.",
    "The accelerator is chosen before the image, and the image before the command. Whoever wants to know why can ask: "
    "the word explain in front of a command prints each decision, its reason and its origin.",
    "An option beats a variable, a variable beats a file, and a file beats the default. Each setting remembers where "
    "it came from, so nobody has to guess.",
    "When something is missing, the doctor says so and prints a command that repairs it. When nothing is missing, the "
    "smoke test starts the smallest of all models and counts its tokens.",
    "Models come from many places: from Hugging Face, from Ollama, from registries and from your own disk. They are "
    "kept in one store, and the server sees them through a mount that cannot be written.",
    "The network is closed when it is not needed. A chat and its server meet at a socket in a private folder, and no "
    "packet leaves the container.",
    "A good error is short. It says in one line what is wrong, and in a second line what to do about it.",
    "This text is read by a very small model that knows nothing but this program. It is a demo, a test and a greeting, "
    "and it is honest about its size.",
)


# More ways to ask what an option or a command does; they are added to every "what does ... do" in topics.txt.
OPTION_FORMS: tuple[str, ...] = (
    "what is {0} for",
    "what is the option {0}",
    "what is the use of {0}",
    "what happens with {0}",
    "what if i give {0}",
    "when should i use {0}",
    "should i use {0}",
    "how does {0} work",
    "i do not understand {0}",
    "explain the option {0}",
    "meaning of {0}",
    "why is there {0}",
    "tell me more about {0}",
    "what changes with {0}",
)
COMMAND_FORMS: tuple[str, ...] = (
    "what is the command {0} for",
    "what is the {0} command",
    "when do i use {0}",
    "how does {0} work",
    "i do not understand the command {0}",
    "what is ramalama-like {0}",
    "what happens when i type ramalama-like {0}",
    "explain ramalama-like {0}",
    "tell me more about the {0} command",
    "ramalama-like {0}",
    "how do i use the {0} command",
)


@dataclass(frozen=True)
class Topic:
    """One thing the model knows: a single answer, so that the right answer to a question is never a matter of luck."""

    key: str
    answer: str
    questions: tuple[str, ...]


def further_questions(questions: tuple[str, ...]) -> tuple[str, ...]:
    """Ways to ask for an option or a command, where the topic has a question for one."""
    found: list[str] = []
    for question in questions:
        if option := re.fullmatch(r"what does (--[a-z-]+) do", question):
            found += [form.format(option[1]) for form in OPTION_FORMS]
        elif command := re.fullmatch(r"what does (?:the )?([a-z]+)(?: command)? do", question):
            found += [form.format(command[1]) for form in COMMAND_FORMS]
    return tuple(dict.fromkeys(form for form in found if form not in questions))


def parse_topics(text: str) -> tuple[Topic, ...]:
    """Read the blocks of topics.txt; a block without an answer or without questions is an error."""
    topics: list[Topic] = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        key, answer, questions = lines[0], lines[1], tuple(lines[2:])
        if not (key.startswith("[") and key.endswith("]") and answer.startswith("> ") and questions):
            raise ValueError(f"topics.txt: bad block {key!r}")
        topics.append(Topic(key[1:-1], answer[2:], questions + further_questions(questions)))
    return tuple(topics)


TOPICS: tuple[Topic, ...] = parse_topics((Path(__file__).parent / "topics.txt").read_text(encoding="utf-8"))
TOPIC_OF_ANSWER: dict[str, str] = {topic.answer: topic.key for topic in TOPICS} | {FALLBACK: "fallback"}


def canonical_text() -> str:
    """Everything that decides what the model learns, in one text: its hash is stored in the model file."""
    lines = [CHAT_TEMPLATE, FALLBACK]
    for topic in TOPICS:
        lines += [topic.key, topic.answer, *topic.questions]
    for name, words in SLOTS.items():
        lines += [name, *words]
    for group in (OFF_TOPIC, SYSTEM, PREFIXES, SUFFIXES, FILLERS, PLAIN_TEXT, *SYNONYMS):
        lines += group
    return "\n".join(lines) + "\n"


def corpus_sha256() -> str:
    """Tell two corpora apart."""
    return hashlib.sha256(canonical_text().encode()).hexdigest()
