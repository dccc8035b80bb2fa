/** The only user of winston: JSON lines on stdout, each an event with explicitly chosen fields, so that nothing is logged by accident. */
import winston from "winston";
import { isoTimes } from "./clock.js";

/** Winston's levels. Nothing is logged at http, verbose and silly. */
export const LOG_LEVELS = ["error", "warn", "info", "http", "verbose", "debug", "silly"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Log {
  error(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  debug(event: string, fields?: LogFields): void;
  /** Resolves when every line has been handed to the operating system. */
  flush(): Promise<void>;
}

export interface ProcessLog extends Log {
  /** Writes an info line. Logged at every LOG_LEVEL, because supervisors wait for these lines. */
  announce(event: string, fields?: LogFields): void;
}

/** The buffer for a slow reader of stdout. When it is full, lines below warning level are counted and dropped. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

/** Lines are written in batches of this length or age, because a write costs more than a line. */
const BATCH_CHARACTERS = 64 * 1024;
const BATCH_MS = 100;

/**
 * Writes lines `{"time","level","event",...fields}` of `level` and above, and announcements, in order. Errors and warnings are written immediately, together with
 * everything before them; a killed process loses at most the last 100 ms of other lines.
 */
export function createLog(level: LogLevel): ProcessLog {
  // The service keeps running if the reader of its log goes away.
  process.stdout.on("error", () => {});
  const logger = winston.createLogger({
    format: winston.format.printf(({ message }) => String(message)),
    transports: [new winston.transports.Stream({ stream: process.stdout, eol: "" })],
  });
  const timeOf = isoTimes();
  let batch = "";
  let timer: NodeJS.Timeout | null = null;
  let isStalled = false;
  let dropped = 0;

  function writeBatch(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (batch !== "") logger.info(batch);
    batch = "";
    isStalled = process.stdout.writableLength > MAX_BUFFERED_BYTES;
    if (isStalled) timer = setTimeout(writeBatch, BATCH_MS).unref();
    else if (dropped > 0) {
      const lines = dropped;
      dropped = 0;
      log.warn("log.dropped", { lines });
    }
  }
  process.on("exit", writeBatch);

  const write = (
    lineLevel: LogLevel,
    { immediately, isAlways = false }: { readonly immediately: boolean; readonly isAlways?: boolean },
  ) => {
    if (!isAlways && LOG_LEVELS.indexOf(lineLevel) > LOG_LEVELS.indexOf(level)) return () => {};
    return (event: string, fields: LogFields = {}) => {
      if (isStalled && !immediately) {
        dropped += 1;
        return;
      }
      const rest = JSON.stringify(fields).slice(1);
      batch += `{"time":"${timeOf(Date.now())}","level":"${lineLevel}","event":"${event}"${rest === "}" ? "" : ","}${rest}\n`;
      if (immediately || batch.length >= BATCH_CHARACTERS) writeBatch();
      else timer ??= setTimeout(writeBatch, BATCH_MS).unref();
    };
  };
  const log: ProcessLog = {
    error: write("error", { immediately: true }),
    warn: write("warn", { immediately: true }),
    info: write("info", { immediately: false }),
    debug: write("debug", { immediately: false }),
    announce: write("info", { immediately: true, isAlways: true }),
    flush: () => {
      writeBatch();
      return new Promise((resolve) => {
        process.stdout.write("", () => {
          resolve();
        });
      });
    },
  };
  return log;
}
