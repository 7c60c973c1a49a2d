import type { OperatorRole } from "../shared/config/config.ts";
import type { Model } from "../models/catalog/model.ts";
import type { Answer } from "../shared/http/endpoint.ts";
import type { ModelNames } from "../accounts/keys/terms.ts";
import type { RouteStatus } from "../models/routing/route-health.ts";
import type { KeyServices } from "../accounts/keys/revocation.ts";
import type { Objects } from "../shared/contracts/objects.ts";
import type { SendMail } from "../accounts/people/mail.ts";
import type { Region } from "../shared/regions.ts";

/** What the handlers work with; `now` is one clock read for the request, Unix ms. */
export type OperatorContext = KeyServices &
  Pick<Objects, "deliveries" | "metrics" | "payments"> & {
    readonly version: string;
    readonly requestId: string;
    /** Of who calls. */
    readonly role: OperatorRole;
    /** How far ahead a price must begin, ms. */
    readonly priceLeadMs: number;
    readonly companyDomains: "off" | "approve" | "on";
    /** Null: links are shown and not sent. */
    readonly mail: SendMail | null;
    /** The model that each alias means here. */
    readonly aliases: ReadonlyMap<string, string>;
    /** The routes that this isolate does not ask freely. */
    readonly breakers: readonly RouteStatus[];
    /** Who can be asked here, by their ids. */
    readonly providers: ReadonlySet<string>;
    /** What is sold here, by id. */
    readonly models: ReadonlyMap<string, Model>;
    /**
     * Where a peer is, why it cannot be asked now (null when it answers), how long it took, and when it answered this
     * isolate last.
     */
    readonly askPeer: (peer: Region) => Promise<{
      url: string | null;
      fault: string | null;
      rttMs: number | null;
      lastOkMs: number | null;
    }>;
    readonly names: ModelNames;
    /** Has the organization's wallet take what was told in the book, after the answer. */
    readonly takeEvents: (orgId: string) => void;
  };

/** One call: what it works with, path parameters, the URL with its query, the parsed body and the Idempotency-Key (null without). */
export type OperatorCall = OperatorContext & {
  readonly params: Readonly<Record<string, string>>;
  readonly url: string;
  readonly body: unknown;
  readonly idempotencyKey: string | null;
};

/** One endpoint under `/admin/v1`; `path` in Hono's notation. */
export type OperatorEndpoint = {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  /** Who may. */
  readonly roles: readonly OperatorRole[];
  readonly handle: (call: OperatorCall) => Promise<Answer>;
};
