"""Streams with Anthropic's SDK, several at once, until the budget of its seat is spent."""

import asyncio
import os

import anthropic

client = anthropic.AsyncAnthropic(max_retries=2)  # ANTHROPIC_BASE_URL and _API_KEY come from `labmates gateway`


async def ask(number: int) -> None:
    """Print a streamed reply as it comes."""
    text = f"Name {number} things that agents can share."
    try:
        async with client.messages.stream(
            model=os.environ["MODEL"], messages=[{"role": "user", "content": text}], max_tokens=400
        ) as stream:
            print("".join([text async for text in stream.text_stream]))
    except anthropic.APIStatusError as error:
        print(f"refused with {error.status_code}: {error.message}")


async def main() -> None:
    """Ask everything at once."""
    await asyncio.gather(*map(ask, range(int(os.environ.get("CALLS", "8")))))


asyncio.run(main())
