/** The named schemas of the document, generated from the zod shapes that also check requests and tests. */
import { z } from "zod";
import * as customer from "../customers.js";
import * as overview from "../overview.js";
import * as service from "../service.js";
import * as staff from "../staff.js";
import * as visitor from "../visitors.js";

export type JsonObject = Readonly<Record<string, unknown>>;

const SHAPES = {
  Money: visitor.moneyShape,
  SignedMoney: staff.signedMoneyShape,
  Promotion: visitor.promotionShape,
  Availability: visitor.availabilityShape,
  Search: visitor.searchShape,
  Price: visitor.priceShape,
  PriceList: visitor.priceListShape,
  Quote: visitor.quoteShape,
  QuoteRequest: visitor.quoteRequestShape,
  QuoteLine: visitor.quoteLineShape,
  Quotes: visitor.quotesShape,
  CustomerDomain: customer.customerDomainShape,
  CustomerDomains: customer.customerDomainsShape,
  DomainRecord: staff.domainRecordShape,
  StaffDomain: staff.staffDomainShape,
  StaffDomains: staff.staffDomainsShape,
  Balance: staff.balanceShape,
  Tier: staff.tierShape,
  StaffPrice: staff.staffPriceShape,
  StaffPrices: staff.staffPricesShape,
  StaffPromiseLine: staff.staffPromiseLineShape,
  CartNoteRequest: staff.cartNoteRequestShape,
  FollowedCart: staff.followedCartShape,
  FollowedCarts: staff.followedCartsShape,
  StaffPromise: staff.staffPromiseShape,
  Lane: overview.laneShape,
  CachePool: overview.cachePoolShape,
  Alarm: overview.alarmShape,
  Notices: overview.noticesShape,
  Overview: overview.overviewShape,
  PreviewedPrice: staff.previewedPriceShape,
  PricePreview: staff.pricePreviewShape,
  Act: staff.actShape,
  Audit: staff.auditShape,
  History: overview.historyShape,
  PurgeRequest: staff.purgeRequestShape,
  Purged: staff.purgedShape,
  KeySet: service.keySetShape,
  Problem: service.problemShape,
  ProblemKind: service.problemKindShape,
  Status: service.statusShape,
  Health: service.healthShape,
} as const;

export type SchemaName = keyof typeof SHAPES;

/** Requests with unknown fields are refused; answers may have new ones, so a client generated from the document must accept them. */
const REQUESTS: readonly string[] = [
  "QuoteRequest",
  "PurgeRequest",
  "CartNoteRequest",
] satisfies SchemaName[];

export function schemaRef(name: SchemaName): JsonObject {
  return { $ref: `#/components/schemas/${name}` };
}

export function namedSchemas(): JsonObject {
  const registry = z.registry<{ id: string }>();
  for (const [id, shape] of Object.entries(SHAPES)) registry.add(shape, { id });
  const { schemas } = z.toJSONSchema(registry, {
    uri: (id) => `#/components/schemas/${id}`,
    override: ({ jsonSchema }) => {
      // Patterns for calendar dates and the bounds of a double don't help readers of generated code.
      if (jsonSchema.format === "date-time") jsonSchema.pattern = "Z$";
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      delete jsonSchema.example;
    },
  });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $id: _id, $schema: _schema, ...schema }]) => [
      id,
      REQUESTS.includes(id) ? schema : opened(schema),
    ]),
  );
}

/** An example of a named schema, made of the examples of its parts. */
export function exampleOf(name: SchemaName): JsonObject {
  return Object.assign({}, made(z.toJSONSchema(SHAPES[name])));
}

function made(schema: z.core.JSONSchema._JSONSchema | undefined): unknown {
  if (schema === undefined || typeof schema === "boolean") return null;
  const { properties = {}, required = [], items } = schema;
  // Of a value that can be null, the other type comes first.
  const [type] = [schema.type].flat();
  const [first] = schema.anyOf ?? [];
  if (schema.example !== undefined) return schema.example;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (first !== undefined) return made(first);
  if (type === "object") return Object.fromEntries(required.map((key) => [key, made(properties[key])]));
  if (type === "array") return items === undefined || Array.isArray(items) ? [] : [made(items)];
  if (type === "boolean") return false;
  return type === "string" ? "text" : (schema.minimum ?? 0);
}

function opened(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(opened);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => key !== "additionalProperties" || value !== false)
      .map(([key, value]) => [key, opened(value)]),
  );
}
