/** What staff and monitoring ask of a service. */
import { expect } from "@jest/globals";
import { overviewShape } from "../../src/wire/overview.js";
import { healthShape } from "../../src/wire/service.js";
import { type Answer, bearer, type Service } from "./service.js";

type Asked = Pick<Service, "ask">;

export function staffRead({ ask }: Asked, path: string): Promise<Answer> {
  return ask(`/v1/staff/${path}`, { headers: bearer("read") });
}

export async function overviewOf(service: Asked) {
  return overviewShape.parse((await staffRead(service, "overview")).body);
}

/** One of the checks that `/health` shows to everyone. */
export async function healthCheck({ ask }: Asked, check: "upstream" | "quota" | "prices" | "proxy") {
  return healthShape.parse((await ask("/health")).body).checks[check][0];
}

/** The number of requests for single names that wait for a call. */
export async function queued(service: Asked): Promise<number> {
  return (await overviewOf(service)).quota.lanes.exact.queued;
}

export async function purge({ ask }: Asked, what: "prices" | "availability" | "account" | "all") {
  const answer = await ask("/v1/staff/cache/purge", {
    method: "POST",
    headers: bearer("operate"),
    body: { what },
  });
  expect(answer.status).toBe(200);
  return answer;
}
