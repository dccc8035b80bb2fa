/** The only user of winston: JSON lines on stdout, each an event with explicitly chosen fields, so that nothing is logged by accident. */
import winston from "winston";
import { currentIds } from "./request-ids.js";

/** Winston's levels. Nothing is logged at http, verbose and silly. */
export const LOG_LEVELS = ["error", "warn", "info", "http", "verbose", "debug", "silly"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The names of every line's own fields can't be used. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>> & {
  readonly [own in "time" | "timestamp" | "level" | "event" | "message"]?: never;
};

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

/** The buffer for a slow reader of stdout. When it is full, lines are counted and dropped. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

/**
 * Writes lines `{"time","level","event",...fields}` of `level` and above, and announcements, in order. While a request is served, they carry its
 * `requestId`, and its `traceId` if it has one.
 */
export function createLog(level: LogLevel): ProcessLog {
  // The service keeps running if the reader of its log goes away.
  process.stdout.on("error", () => {});
  const log = createLogger(level);
  const announcer = createLogger("info");

  let dropped = 0;
  function reportDropped(): void {
    log.warn("log.dropped", { lines: dropped });
    dropped = 0;
  }

  function write(logger: winston.Logger, lineLevel: LogLevel, event: string, fields?: LogFields): void {
    if (process.stdout.writableLength <= MAX_BUFFERED_BYTES) {
      const ids = currentIds();
      const [requestId, traceId] = [ids?.requestId, ids?.trace?.id];
      logger.log({ requestId, traceId, ...fields, level: lineLevel, message: event });
      return;
    }
    if (dropped === 0) process.stdout.once("drain", reportDropped);
    dropped += 1;
  }
  const at = (lineLevel: LogLevel) =>
    log.isLevelEnabled(lineLevel)
      ? (event: string, fields?: LogFields) => {
          write(log, lineLevel, event, fields);
        }
      : () => {};

  return {
    error: at("error"),
    warn: at("warn"),
    info: at("info"),
    debug: at("debug"),
    announce(event, fields) {
      write(announcer, "info", event, fields);
    },
    flush: () =>
      new Promise((resolve) => {
        process.stdout.write("", () => {
          resolve();
        });
      }),
  };
}

const { combine, timestamp, printf } = winston.format;

function createLogger(level: LogLevel): winston.Logger {
  return winston.createLogger({
    level,
    format: combine(
      timestamp(),
      printf(({ timestamp: time, level: lineLevel, message: event, ...fields }) =>
        JSON.stringify({ time, level: lineLevel, event, ...fields }),
      ),
    ),
    transports: [new winston.transports.Console()],
  });
}
