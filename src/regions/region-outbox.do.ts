import { DurableObject } from "cloudflare:workers";

export class RegionOutbox extends DurableObject<Env> {}
