# The model picks one of three tools and writes typed arguments for it; the program answers with what the tool returns.
#
#     promptlang run examples/agent.pl --tools examples/agent_tools.py --arg question="Do you have any lemons?"
#
# Look at: the arguments can't be of a wrong type, for each `gen` is held to one. What a tool returns is checked, too,
# before the program sees it.

"""Answer a shop's customer with the help of tools."""

type Day = "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday" | "Sunday"
type Item = "apples" | "eggs" | "lemons" | "pears"


record Answer:
    tool: str
    ## What the tool returned, as text.
    found: str


## How many of an item the shop has.
tool stock(item: Item) -> int

## The product of two numbers.
tool multiply(first: int, second: int) -> int

## When the shop is open.
tool hours(day: Day) -> str


fragment example(question: str, call: str):
    user: "${question}"
    assistant: "${call}"


program main(
    ## What the customer asks.
    question: str = "When are you open on Saturday?",
) -> Answer:
    system: "You name the tool that a question needs, and then its arguments."
    use example("Are there any eggs?", "stock(eggs)")
    use example("What is 3 times 4?", "multiply(3, 4)")
    use example("When do you close on Friday?", "hours(Friday)")
    use example("How many apples are left?", "stock(apples)")
    use example("How many pears do you have?", "stock(pears)")
    use example("How much are 20 pieces at 15 each?", "multiply(20, 15)")
    use example("Are you open on Sunday?", "hours(Sunday)")
    user: "${question}"
    assistant:
        name = select("stock", "multiply", "hours")
        "("
        if name == "stock":
            item = gen(Item)
            count = stock(item)
            found = "We have ${count} ${item}."
        elif name == "multiply":
            first = gen(int in 0..999)
            ","
            second = gen(int in 0..999)
            product = multiply(first, second)
            found = "${first} times ${second} is ${product}."
        else:
            day = gen(Day)
            open = hours(day)
            found = "Opening hours on ${day}: ${open}."
        ")"

    return Answer(tool=name, found=found)
