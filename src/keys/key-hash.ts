import * as z from "zod/mini";

/** What a key is known by everywhere but in its holder's hands: 64 hex characters. */
export const keyHash = z.string().check(z.regex(/^[0-9a-f]{64}$/, "must be 64 hex characters"));
