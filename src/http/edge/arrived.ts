import type { IncomingMessage } from "node:http";
import type { Request } from "express";

/** A request in front of Express, with Express's getter for the address behind the trusted proxies. */
export type Arrived = IncomingMessage & Pick<Request, "ip">;
