import type { OperatorRoute } from "../shared/http/route.ts";
import type { OperatorRole } from "../shared/config/config.ts";
import type { Model } from "../models/catalog/model.ts";
import type { EndpointResult } from "../shared/http/endpoint.ts";
import type { ModelNames } from "../accounts/keys/terms.ts";
import type { RouteStatus } from "../models/routing/route-health.ts";
import type { KeyServices } from "../accounts/keys/revocation.ts";
import type { Objects } from "../shared/contracts/objects.ts";
import type { SendMail } from "../accounts/people/mail.ts";
import type { Region } from "../shared/regions.ts";

/** Services for handlers of operator calls. `now` is Unix ms. */
export type OperatorContext = KeyServices &
  Pick<Objects, "deliveries" | "metrics" | "payments"> & {
    readonly version: string;
    readonly requestId: string;
    /** `id` is the operator's name. */
    readonly actor: { readonly kind: "operator"; readonly id: string };
    readonly role: OperatorRole;
    /** Minimum ms between posting a price and its start. */
    readonly priceLeadMs: number;
    readonly companyDomains: "off" | "approve" | "on";
    /** Sends email. Null if email isn't configured. */
    readonly mail: SendMail | null;
    readonly aliases: ReadonlyMap<string, string>;
    readonly breakers: readonly RouteStatus[];
    readonly providers: ReadonlySet<string>;
    readonly models: ReadonlyMap<string, Model>;
    /**
     * Calls a region. Returns the region's URL, the failure's reason or null, the duration, and the
     * time of the region's last response to this isolate (Unix ms).
     */
    readonly checkPeer: (peer: Region) => Promise<{
      url: string | null;
      fault: string | null;
      rttMs: number | null;
      lastOkMs: number | null;
    }>;
    readonly names: ModelNames;
    readonly takeEvents: (orgId: string) => void;
    /**
     * Returns a refund's payment ID, or null if the refund is unknown or payments are off. Returns
     * other IDs unchanged.
     */
    readonly paymentOf: (id: string) => Promise<string | null>;
  };

/** An operator's request, and the services for its handler. */
export type OperatorCall = OperatorContext & {
  readonly params: Readonly<Record<string, string>>;
  readonly url: string;
  readonly body: unknown;
  readonly idempotencyKey: string | null;
};

/**
 * A call that makes changes. `noteDetails` stores details that neither the body nor the response
 * contains.
 */
export type OperatorChange = OperatorCall & {
  readonly noteDetails: (details: Readonly<Record<string, unknown>>) => void;
};

export type OperatorEndpoint = OperatorRoute & {
  readonly handle: (call: OperatorCall) => Promise<EndpointResult>;
};
