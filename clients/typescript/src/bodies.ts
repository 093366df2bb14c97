import { ConnectionFailed, UnreadableAnswer } from "./errors.js";

/** As long as this client reads: a server may send more than there is memory for. */
export const MAX_BODY_BYTES = 16 * 2 ** 20;
export const MAX_LINE_CHARS = 2 ** 20;

/** The whole body as text. Throws UnreadableAnswer where it is too long. */
export async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of (response.body ?? new Response("").body) as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES) throw new UnreadableAnswer(response.headers.get("x-request-id"));
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

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
      if (rest.length > MAX_LINE_CHARS || lines.some((line) => line.length > MAX_LINE_CHARS)) {
        throw new UnreadableAnswer(null);
      }
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
  let chars = 0;
  for await (const line of readLines(body, silentMs)) {
    chars = line === "" ? 0 : chars + line.length;
    if (chars > MAX_LINE_CHARS) throw new UnreadableAnswer(null);
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
