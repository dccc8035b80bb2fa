/** The one home of winston: JSON lines on stdout, each an event with chosen flat fields, so that nothing unforeseen is written. */
import winston from "winston";

export const LOG_LEVELS = ["error", "warn", "info", "http", "verbose", "debug", "silly"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  error(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  debug(event: string, fields?: LogFields): void;
  /** Resolves when every line has been handed to the system. */
  flush(): Promise<void>;
}

/** What may wait for a slow reader of stdout. Beyond it lines below a warning are counted instead of kept. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024;

/** Lines are handed on together, because each hand-over costs more than the line: at this size, or after this time. */
const BATCH_BYTES = 64 * 1024;
const BATCH_MS = 100;

/**
 * A log that writes lines `{"time","level","event",...fields}` of `level` and above, in their order. Errors and warnings are written at
 * once with all that came before; a killed process loses no more than the last tenth of a second of the others.
 */
export function createLog(level: LogLevel): Log {
  // Whoever reads the log may go away; the service stays.
  process.stdout.on("error", () => {});
  const logger = winston.createLogger({
    format: winston.format.printf(({ message }) => String(message)),
    transports: [new winston.transports.Stream({ stream: process.stdout, eol: "" })],
  });
  const timeOf = isoTimes();
  const batch = Buffer.allocUnsafe(BATCH_BYTES);
  let filled = 0;
  let timer: NodeJS.Timeout | null = null;
  let isStalled = false;
  let dropped = 0;

  function handOver(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (filled > 0) logger.info(batch.toString("utf8", 0, filled));
    filled = 0;
    isStalled = process.stdout.writableLength > MOST_WAITING_BYTES;
    if (isStalled) timer = setTimeout(handOver, BATCH_MS).unref();
    else if (dropped > 0) {
      const lines = dropped;
      dropped = 0;
      log.warn("log.dropped", { lines });
    }
  }
  process.on("exit", handOver);

  const write = (lineLevel: LogLevel, { atOnce }: { readonly atOnce: boolean }) => {
    if (LOG_LEVELS.indexOf(lineLevel) > LOG_LEVELS.indexOf(level)) return () => {};
    return (event: string, fields: LogFields = {}) => {
      if (isStalled && !atOnce) {
        dropped += 1;
        return;
      }
      const rest = JSON.stringify(fields).slice(1);
      const line = `{"time":"${timeOf(Date.now())}","level":"${lineLevel}","event":"${event}"${rest === "}" ? "" : ","}${rest}\n`;
      // A character takes three bytes at most.
      if (filled + 3 * line.length > BATCH_BYTES) handOver();
      if (3 * line.length > BATCH_BYTES) logger.info(line);
      else filled += batch.write(line, filled);
      if (atOnce) handOver();
      else timer ??= setTimeout(handOver, BATCH_MS).unref();
    };
  };
  const log: Log = {
    error: write("error", { atOnce: true }),
    warn: write("warn", { atOnce: true }),
    info: write("info", { atOnce: false }),
    debug: write("debug", { atOnce: false }),
    flush: () => {
      handOver();
      return new Promise((resolve) => {
        process.stdout.write("", () => {
          resolve();
        });
      });
    },
  };
  return log;
}

/** RFC 3339 in UTC; many lines share a millisecond. */
function isoTimes(): (atMs: number) => string {
  let lastMs = NaN;
  let last = "";
  return (atMs) => {
    if (atMs !== lastMs) {
      lastMs = atMs;
      last = new Date(atMs).toISOString();
    }
    return last;
  };
}
