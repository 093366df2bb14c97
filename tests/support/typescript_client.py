"""Builds the TypeScript client and runs programs over it."""

import asyncio
import os
import shutil
from pathlib import Path

from support.documents import PROJECT

CLIENT = PROJECT / "clients" / "typescript"
BUILD_S = 100
RUN_S = 60


async def build() -> Path:
    """Compiles the client and its tests if they changed; returns the folder with both."""
    await run("make", "-s", "-C", str(PROJECT), "clients/typescript/dist/.built", within_s=BUILD_S)
    return CLIENT / "dist"


async def run_node(*arguments: str, **environment: str) -> str:
    """What a program prints. The first ``node`` on the path runs it."""
    node = shutil.which("node")
    assert node is not None, "node runs the TypeScript client"
    return await run(node, *arguments, within_s=RUN_S, **environment)


async def run(program: str, *arguments: str, within_s: float, **environment: str) -> str:
    """What it prints, in the client's folder; fails where it fails."""
    process = await asyncio.create_subprocess_exec(
        program, *arguments, cwd=CLIENT, env={"PATH": os.environ["PATH"], **environment},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(within_s):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, printed.decode()
    return printed.decode()
