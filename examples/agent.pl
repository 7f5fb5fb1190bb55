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


fragment example(question: str, call: str):
    user: "${question}"
    assistant: "${call}"


program agent(
    ## What the customer asks.
    question: str = "Do you have any honey?",
) -> Answer:
    system: "You name the tool that a question needs, and then its arguments."
    use example("Is there any bread?", "stock(bread)")
    use example("What is 3 times 4?", "multiply(3, 4)")
    use example("When do you close on Friday?", "hours(Friday)")
    use example("How many apples are left?", "stock(apples)")
    use example("How much are 20 pieces at 15 each?", "multiply(20, 15)")
    use example("Are you open on Sunday?", "hours(Sunday)")
    user: "${question}"
    assistant:
        name = select("stock", "multiply", "hours")
        "("
        if name == "stock":
            item = gen(Item)
            count = stock(item)
            found = "There are ${count} ${item}."
        elif name == "multiply":
            first = gen(int in 0..999)
            ","
            second = gen(int in 0..999)
            product = multiply(first, second)
            found = "${first} times ${second} is ${product}."
        else:
            day = gen(Day)
            open = hours(day)
            found = "On ${day} the shop is open: ${open}."
        ")"

    user: "The tool says: ${found} Tell the customer so, politely."
    assistant:
        "Dear customer,"
        reply = gen(max_tokens=40, stop="\n\n")
    return Answer(tool=name, found=found, reply=reply)
