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

/** A log that writes lines `{"time","level","event",...fields}` of `level` and above. */
export function createLog(level: LogLevel): Log {
  // Whoever reads the log may go away; the service stays.
  process.stdout.on("error", () => {});
  const logger = winston.createLogger({
    level,
    format: winston.format.printf(({ level: lineLevel, message, fields }) =>
      JSON.stringify({
        time: new Date().toISOString(),
        level: lineLevel,
        event: message,
        ...fieldsOf(fields),
      }),
    ),
    transports: [new winston.transports.Stream({ stream: process.stdout, eol: "\n" })],
  });
  const write =
    (lineLevel: LogLevel) =>
    (event: string, fields: LogFields = {}) => {
      logger.log(lineLevel, event, { fields });
    };
  return {
    error: write("error"),
    warn: write("warn"),
    info: write("info"),
    debug: write("debug"),
    flush: () =>
      new Promise((resolve) => {
        process.stdout.write("", () => {
          resolve();
        });
      }),
  };
}

function fieldsOf(fields: unknown): object {
  return typeof fields === "object" && fields !== null ? fields : {};
}
