/** Sends lists to staff as JSON or CSV. */
import type { Request, Response } from "express";
import { csvOf, type Table } from "../wire/csv.js";
import { JSON_TYPE, send, sendJson } from "./edge/answers.js";

export const CSV = "text/csv; charset=utf-8; header=present";

/** Sends the list as JSON, or as CSV to a client that prefers it. */
export function sendList(request: Request, response: Response, body: object, table: Table): void {
  response.vary("Accept");
  if (request.accepts([JSON_TYPE, CSV]) !== CSV) {
    sendJson(response, body);
    return;
  }
  response.attachment(`${table.name}.csv`);
  send(response, { body: Buffer.from(csvOf(table)), type: CSV, cacheControl: "no-store", tagged: true });
}
