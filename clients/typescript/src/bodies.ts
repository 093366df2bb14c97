import { ConnectionFailed } from "./errors.js";

/**
 * The lines of a body, without their ends. `silentMs`: a body that sends nothing for so long fails. Throws
 * ConnectionFailed where the connection is cut; what stands after the last end of a line is not given then.
 */
export async function* readLines(body: ReadableStream<Uint8Array>, silentMs: number): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await readInTime(reader, silentMs);
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const lines = rest.split(/\r?\n/);
      rest = done ? "" : (lines.pop() ?? "");
      yield* done && lines.at(-1) === "" ? lines.slice(0, -1) : lines;
      if (done) return;
    }
  } finally {
    // Also where the reader of the lines stops early: the service learns of it.
    reader.cancel().catch(() => {});
  }
}

async function readInTime(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  silentMs: number,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("nothing came")), silentMs);
  });
  try {
    return await Promise.race([reader.read(), late]);
  } catch (error) {
    throw new ConnectionFailed("the answer was cut", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** What one block of server-sent events says. `data` is null for one that moves the position only. */
export interface SentEvent {
  id: string | null;
  data: string | null;
  retryMs: number | null;
}

/** The blocks of a body of server-sent events; one that was not ended is left out. */
export async function* readEvents(body: ReadableStream<Uint8Array>, silentMs: number): AsyncGenerator<SentEvent> {
  let id: string | null = null;
  let retryMs: number | null = null;
  let data: string[] = [];
  for await (const line of readLines(body, silentMs)) {
    if (line === "") {
      yield { id, data: data.length > 0 ? data.join("\n") : null, retryMs };
      [id, retryMs, data] = [null, null, []];
      continue;
    }
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id" && !value.includes("\0")) id = value;
    else if (name === "data") data.push(value);
    else if (name === "retry" && /^[0-9]+$/.test(value)) retryMs = Number(value);
  }
}
