"""Our own Vyper contracts, compiled from their sources."""

from functools import cache
from pathlib import Path

from vyper.compiler import compile_from_file_input
from vyper.compiler.input_bundle import FilesystemInputBundle


@cache
def compile_contract(source: Path) -> str:
    """Creation bytecode (``0x`` hex) of one source file, with imports from the same folder. A process
    compiles a file once: that takes half a second and more."""
    bundle = FilesystemInputBundle([source.parent])
    output = compile_from_file_input(
        bundle.load_file(source.name), input_bundle=bundle, output_formats=["bytecode"]
    )
    return str(output["bytecode"])
