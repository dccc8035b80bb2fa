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
 * Yields the events of the body until it ends, or until nothing, not even a comment, arrives for `silenceMs`; without an incomplete last one. Rejects if
 * the body fails. Ending the iteration closes the connection.
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
    const [, field, value = ""] = /^([^:]*):? ?(.*)/s.exec(line) ?? [];
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
  // If the connection has already failed, the read has reported that.
  const close = (): unknown => reader.cancel().catch(() => {});
  try {
    for (;;) {
      const silence = setTimeout(close, silenceMs);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      // A CR at the very end may be half of a CR LF.
      const whole = rest.endsWith("\r") ? rest.length - 1 : rest.length;
      const lines = rest.slice(0, whole).split(/\r\n|\n|\r/);
      rest = (lines.pop() ?? "") + rest.slice(whole);
      yield* lines;
    }
  } finally {
    close();
  }
}
