/** Logs that a secret file has changed, and that a changed one isn't used: otherwise nobody would know that a token is still valid or a key still in use. */
import { type Clock, every } from "../clock.js";
import type { Log } from "../logger.js";
import type { FileSecret } from "../secret.js";

export interface SecretFile {
  /** The setting that names the file. */
  readonly setting: string;
  readonly secret: FileSecret;
}

const LOOK_EVERY_MS = 1000;

/** Starts watching; returns a function that stops it. */
export function watchSecretFiles(files: readonly SecretFile[], clock: Clock, log: Log): () => void {
  const looks = files.map((file) => createLook(file, log));
  return every(clock, LOOK_EVERY_MS, () => {
    for (const look of looks) look();
  });
}

function createLook({ setting, secret }: SecretFile, log: Log): () => void {
  let inEffect = secret.current();
  let last: string | null = null;
  let logged: string | null = null;
  return () => {
    const problem = secret.problem();
    if (problem === null) {
      const value = secret.current();
      if (value !== inEffect || logged !== null) log.info("secret.file.applied", { setting });
      inEffect = value;
      logged = null;
    } else if (problem === last && problem !== logged) {
      // Only now: while a file is being replaced, it is missing or empty for a moment.
      logged = problem;
      log.error("secret.file.rejected", { setting, problem });
    }
    last = problem;
  };
}
