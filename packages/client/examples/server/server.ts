/**
 * A website's server: renders the price list, which the client keeps and asks for again with its ETag, and receives signed carts, which it
 * verifies with the service's published keys.
 */
import { createServer, type IncomingMessage } from "node:http";
import { createClient, StorefrontProblem } from "af-storefront-client";
import { createRemoteJWKSet, jwtVerify } from "jose";

const SERVICE = process.env["STOREFRONT_URL"] ?? "http://localhost:3000";
const client = createClient({ baseUrl: SERVICE, timeoutMs: 10_000 });
const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", SERVICE));

async function priceList(): Promise<string> {
  const { prices } = await client.prices({ action: "registration" });
  return prices
    .map(({ tld, years, price }) => `${tld} for ${years} year(s): ${price.amount} ${price.currency}`)
    .join("\n");
}

async function order(request: IncomingMessage): Promise<string> {
  let form = "";
  for await (const chunk of request) form += String(chunk);
  const promise = new URLSearchParams(form).get("promise") ?? "";
  const { payload } = await jwtVerify(promise, keys, { algorithms: ["EdDSA"], typ: "price-promise+jwt" });
  return `These lines are to be paid: ${JSON.stringify(payload["items"])}`;
}

createServer((request, response) => {
  const answer = request.method === "POST" ? order(request) : priceList();
  answer.then(
    (text) => response.end(text),
    (problem: unknown) => {
      response.statusCode = problem instanceof StorefrontProblem ? 503 : 400;
      response.end(
        problem instanceof StorefrontProblem ? problem.message : "This cart isn't valid. Confirm it again.",
      );
    },
  );
}).listen(Number(process.env["PORT"] ?? 8080));
