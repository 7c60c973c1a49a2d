import * as z from "zod/mini";
import { calledBy } from "../lib/caller.ts";
import type { Called } from "../lib/caller.ts";
import { keyHash } from "./key-hash.ts";

/** What a peer says that a request shows beside its key's hash. Left out: the key's first secret. */
export const shownFields = { secret: z.optional(keyHash) };
type ShownWire = { readonly secret?: string | undefined };

export function shownToWire({ shown }: Called): ShownWire {
  return shown === undefined ? {} : { secret: shown.secret };
}

export function calledFromWire(hash: string, { secret }: ShownWire): Called {
  return calledBy(hash, secret === undefined ? undefined : { secret });
}
