import * as z from "zod/mini";
import { calledBy } from "../lib/caller.ts";
import type { Called } from "../lib/caller.ts";
import { keyHashSchema } from "../lib/key.ts";
import { sessionFromWire, sessionToWire, sessionWire } from "./session-token.ts";

/** What a peer says that a request shows beside its key's hash. Left out: the key's first secret. */
export const shownFields = { secret: z.optional(keyHashSchema), session: z.optional(sessionWire) };
type ShownWire = {
  readonly secret?: string | undefined;
  readonly session?: z.infer<typeof sessionWire> | undefined;
};

export function shownToWire({ shown }: Called): ShownWire {
  if (shown?.session !== undefined) return { session: sessionToWire(shown.session) };
  return shown === undefined ? {} : { secret: shown.secret };
}

export function calledFromWire(hash: string, { secret, session }: ShownWire): Called {
  if (session !== undefined) return calledBy(hash, { session: sessionFromWire(session) });
  return calledBy(hash, secret === undefined ? undefined : { secret });
}
