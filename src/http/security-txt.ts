/** `/.well-known/security.txt` (RFC 9116): where to report a security problem. */
import type { Request, Response } from "express";
import { send } from "./edge/answers.js";

/** How long the file is valid after the start of the current month. */
const VALID_MONTHS = 6;

export function securityTxt(contact: string, now: () => number) {
  return (_request: Request, response: Response): void => {
    const today = new Date(now());
    const expires = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + VALID_MONTHS));
    const lines = [`Contact: ${contact}`, `Expires: ${expires.toISOString()}`, "Preferred-Languages: en", ""];
    send(response, {
      body: Buffer.from(lines.join("\n")),
      type: "text/plain; charset=utf-8",
      cacheControl: "no-store",
      tagged: true,
    });
  };
}
