import type { IncomingMessage } from "node:http";
import type { Request } from "express";

/** A request that has not passed Express, of which it has the address behind the trusted proxies. */
export type Arrived = IncomingMessage & Pick<Request, "ip">;
