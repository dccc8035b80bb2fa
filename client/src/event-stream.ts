/** Parses event streams as the HTML standard defines them, on top of fetch, which can send headers that EventSource can't. */

export interface StreamEvent {
  readonly event: string;
  readonly data: string;
}

/** What a reconnect needs; updated while the stream is read. */
export interface StreamPosition {
  lastEventId: string;
  /** How long to wait before a reconnect; undefined until the service sets it. */
  retryMs: number | undefined;
}

/**
 * Yields the events of the body until it ends, without an incomplete last one. Rejects if the body fails or nothing, not even a comment, arrives for
 * `silenceMs`. Ending the iteration closes the connection.
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  position: StreamPosition,
  silenceMs: number,
): AsyncGenerator<StreamEvent, void, undefined> {
  let event = "";
  let data: string[] = [];
  let id = position.lastEventId;
  for await (const line of linesOf(body, silenceMs)) {
    if (line === "") {
      position.lastEventId = id;
      if (data.length > 0) yield { event: event === "" ? "message" : event, data: data.join("\n") };
      event = "";
      data = [];
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
    else if (field === "id" && !value.includes("\0")) id = value;
    else if (field === "retry" && /^\d{1,9}$/.test(value)) position.retryMs = Number(value);
  }
}

/** Lines end with CR LF, LF or CR. Text after the last line ending isn't yielded. */
async function* linesOf(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  // Decodes across chunks and drops a byte order mark.
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await within(silenceMs, reader.read());
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      // A CR at the very end may be half of a CR LF.
      const whole = rest.endsWith("\r") ? rest.length - 1 : rest.length;
      const lines = rest.slice(0, whole).split(/\r\n|\n|\r/);
      rest = (lines.pop() ?? "") + rest.slice(whole);
      yield* lines;
    }
  } finally {
    // Closes the connection. If it has already failed, the read has reported that.
    reader.cancel().catch(() => undefined);
  }
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_done, failed) => {
    timer = setTimeout(() => {
      failed(new Error("The stream went silent."));
    }, ms);
  });
  try {
    return await Promise.race([promise, silence]);
  } finally {
    clearTimeout(timer);
  }
}
