import type { IssuerEntry } from "../../shared/config/config.ts";
import type { PersonSession } from "../../shared/contracts/console-session.ts";
import type { Objects } from "../../shared/contracts/objects.ts";
import type { EndpointResult } from "../../shared/http/endpoint.ts";
import type { KeyServices } from "../keys/revocation.ts";
import type { Actor } from "../../shared/event.ts";
import type { Result } from "../../shared/failure.ts";
import type { SendMail } from "./mail.ts";
import type { ActingPerson } from "./people.store.ts";

type SignUpRules = {
  readonly mode: "off" | "approve" | "on";
  readonly maxPerHour: number;
  readonly maxPerDayAndAddress: number;
  readonly creditMicro: number;
  readonly maxCreditsPerDayMicro: number;
};

export type PeopleServices = KeyServices &
  Pick<Objects, "deliveries" | "payments"> & {
    readonly takeEvents: (orgId: string) => void;
    readonly signUp: SignUpRules;
    readonly companyDomains: "off" | "approve" | "on";
    /** Sends email. Null if email isn't configured. */
    readonly mail: SendMail | null;
    readonly isSandbox: boolean;
    readonly reachIssuer: (entry: IssuerEntry) => Promise<Result<null>>;
    readonly origin: string;
  };

export type ConsoleSessionSummary = Pick<
  PersonSession,
  "browser" | "issuer" | "openedAt" | "freshAt" | "freshBy"
> & { readonly id: string; readonly expiresAt: number };

export type PersonConsoleSessions = {
  readonly id: string;
  list(): Promise<Result<readonly ConsoleSessionSummary[]>>;
  close(id: string | null): Promise<Result<null>>;
  act(as: { readonly memberId: string; readonly orgId: string }): Promise<Result<null>>;
};

/** A console call by a logged-in person. */
export type PeopleCall = PeopleServices &
  ActingPerson & {
    readonly sessions: PersonConsoleSessions;
    /** The organization whose issuer created the session, or '' for the operator's issuers. */
    readonly realm: string;
    readonly tenant: string | null;
    readonly params: Readonly<Record<string, string>>;
    readonly body: unknown;
  };

/** A console call by a person acting as a member. */
export type MemberCall = PeopleCall & { readonly as: NonNullable<ActingPerson["as"]> };

export function createMemberActor(memberId: string): Actor {
  return { kind: "member", id: memberId };
}

export type PeopleCallHandler<Call> = (call: Call) => Promise<EndpointResult>;
