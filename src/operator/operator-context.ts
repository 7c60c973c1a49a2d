import type { OperatorRole } from "../shared/config/config.ts";
import type { Model } from "../models/catalog/model.ts";
import type { Answer } from "../shared/http/endpoint.ts";
import type { ModelNames } from "../accounts/keys/terms.ts";
import type { RouteStatus } from "../models/routing/route-health.ts";
import type { KeyServices } from "../accounts/keys/revocation.ts";
import type { Objects } from "../shared/contracts/objects.ts";
import type { SendMail } from "../accounts/people/mail.ts";
import type { Region } from "../shared/regions.ts";

/** The services of the handlers. `now` is read once per request, Unix ms. */
export type OperatorContext = KeyServices &
  Pick<Objects, "deliveries" | "metrics" | "payments"> & {
    readonly version: string;
    readonly requestId: string;
    readonly role: OperatorRole;
    /** The least time in ms before a price begins. */
    readonly priceLeadMs: number;
    readonly companyDomains: "off" | "approve" | "on";
    /** Null: links are shown and not sent. */
    readonly mail: SendMail | null;
    readonly aliases: ReadonlyMap<string, string>;
    readonly breakers: readonly RouteStatus[];
    readonly providers: ReadonlySet<string>;
    readonly models: ReadonlyMap<string, Model>;
    /**
     * Returns a peer's address, the reason why it cannot be called (null if it can), the time of the call,
     * and its last answer to this isolate.
     */
    readonly askPeer: (peer: Region) => Promise<{
      url: string | null;
      fault: string | null;
      rttMs: number | null;
      lastOkMs: number | null;
    }>;
    readonly names: ModelNames;
    /** Delivers the database's events to the organization's wallet after the answer. */
    readonly takeEvents: (orgId: string) => void;
  };

/** One call: services, path parameters, the URL, the parsed body and the Idempotency-Key (null without). */
export type OperatorCall = OperatorContext & {
  readonly params: Readonly<Record<string, string>>;
  readonly url: string;
  readonly body: unknown;
  readonly idempotencyKey: string | null;
};

/** An endpoint under `/admin/v1`; `path` in Hono's notation. */
export type OperatorEndpoint = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly roles: readonly OperatorRole[];
  readonly handle: (call: OperatorCall) => Promise<Answer>;
};
