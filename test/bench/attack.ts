/** The attacks that floods.ts runs. */
import { z } from "zod";

export const attackSchema = z.discriminatedUnion("kind", [
  /** Pipelined requests on each socket, whose answers are never read. */
  z.object({ kind: z.literal("pipelined"), path: z.string(), sockets: z.int(), requests: z.int() }),
  z.object({ kind: z.literal("connections"), path: z.string(), perSecond: z.number() }),
  z.object({ kind: z.literal("slow headers"), sockets: z.int() }),
  z.object({ kind: z.literal("slow bodies"), sockets: z.int() }),
  /** Event streams that are never read. */
  z.object({ kind: z.literal("slow readers"), sockets: z.int() }),
]);
export type Attack = z.infer<typeof attackSchema>;
