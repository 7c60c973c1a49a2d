import { DurableObject } from "cloudflare:workers";
import type { Admission } from "./limiter-contract.ts";

export class KeyLimiter extends DurableObject<Env> {
  admit(): Admission {
    return { ok: false, failure: { kind: "invalid_api_key" } };
  }
}
