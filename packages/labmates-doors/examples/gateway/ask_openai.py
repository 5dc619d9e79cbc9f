"""Streams with OpenAI's SDK, several at once, until the budget of its seat is spent."""

import asyncio
import os

import openai

client = openai.AsyncOpenAI(max_retries=2)  # OPENAI_BASE_URL and OPENAI_API_KEY come from `labmates gateway`


async def ask(number: int) -> None:
    """Print a streamed reply as it comes."""
    text = f"Name {number} things that agents can share."
    try:
        stream = await client.chat.completions.create(
            model=os.environ["MODEL"],
            messages=[{"role": "user", "content": text}],
            max_completion_tokens=400,
            stream=True,
        )
        print("".join([event.choices[0].delta.content or "" async for event in stream if event.choices]))
    except openai.APIStatusError as error:
        print(f"refused with {error.status_code}: {error.message}")


async def main() -> None:
    """Ask everything at once."""
    await asyncio.gather(*map(ask, range(int(os.environ.get("CALLS", "8")))))


asyncio.run(main())
