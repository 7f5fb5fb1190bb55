# The model picks one of three tools, writes typed arguments for it, and answers with what the tool returns.
#
#     promptlang run examples/agent.pl --tools examples/agent_tools.py --arg question="When are you open on Saturday?"
#
# Look at: the arguments can't be of a wrong type, for each `gen` is held to one. What a tool returns is checked, too,
# before the program sees it.

"""Answer a shop's customer with the help of tools."""

type Day = "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday" | "Sunday"
type Item = "apples" | "bread" | "cheese" | "honey"

record Answer:
    tool: str
    ## What the tool returned, as text.
    found: str
    reply: str

## How many of an item the shop has.
tool stock(item: Item) -> int

## The product of two numbers.
tool multiply(first: int, second: int) -> int

## When the shop is open.
tool hours(day: Day) -> str

program agent(
    ## What the customer asks.
    question: str = "Do you have any honey?",
) -> Answer:
    system: "You work in a shop that sells apples, bread, cheese and honey. Answer in one short sentence."
    user: """
        Which tool helps with the last question?
        "Is there any bread?" stock
        "What is 3 times 4?" multiply
        "When do you close on Friday?" hours
        "How many apples are left?" stock
        "${question}"
        """
    assistant: name = select("stock", "multiply", "hours", by="prior")

    if name == "stock":
        user: "Which item is this about: ${question}"
        assistant: item = select("apples", "bread", "cheese", "honey", by="prior")
        count = stock(item)
        found = "There are ${count} ${item}."
    elif name == "multiply":
        user: "Which two numbers are in this: ${question}"
        assistant:
            first = gen(int in 0..999)
            " and"
            second = gen(int in 0..999)
        product = multiply(first, second)
        found = "${first} times ${second} is ${product}."
    else:
        user: "Which day of the week is in this: ${question}"
        assistant: day = gen(Day)
        open = hours(day)
        found = "On ${day} the shop is open: ${open}."

    user: "The tool says: ${found} Now answer the customer."
    assistant: reply = gen(max_tokens=40, stop="\n")
    return Answer(tool=name, found=found, reply=reply)
