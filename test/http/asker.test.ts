/** Which addresses the quota counts as one client. */
import { expect, test } from "@jest/globals";
import { askerOf } from "../../src/http/edge/client.js";

test("an IPv4 address is one client, however it is written", () => {
  expect(askerOf("203.0.113.7")).toEqual({ client: "203.0.113.7" });
  expect(askerOf("::ffff:203.0.113.7")).toEqual({ client: "203.0.113.7" });
});

test("addresses of one IPv6 /64 are one client, and those of one /48 one network", () => {
  const host = askerOf("2001:db8:aa:1::1");
  expect(askerOf("2001:db8:aa:1:ffff::2")).toEqual(host);
  const neighbour = askerOf("2001:db8:aa:2::1");
  expect(neighbour.client).not.toBe(host.client);
  expect(neighbour.network).toBe(host.network);
  expect(askerOf("2001:db8:ab:1::1").network).not.toBe(host.network);
});
