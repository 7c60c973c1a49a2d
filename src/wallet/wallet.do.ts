import { DurableObject } from "cloudflare:workers";

export class Wallet extends DurableObject<Env> {}
