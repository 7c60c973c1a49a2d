import type { IssuerEntry } from "../../shared/config/config.ts";
import type { Objects } from "../../shared/contracts/objects.ts";
import type { Answer } from "../../shared/http/endpoint.ts";
import type { KeyServices } from "../keys/revocation.ts";
import type { Actor } from "../../shared/event.ts";
import type { Result } from "../../shared/failure.ts";
import type { SendMail } from "./mail.ts";
import type { ActingPerson } from "./people.store.ts";

type SignUpRules = {
  readonly mode: "off" | "approve" | "on";
  readonly anHour: number;
  readonly aDayAnAddress: number;
  readonly creditMicro: number;
  readonly creditsADayMicro: number;
};

/** The dependencies of people calls. `now` is the request's time (Unix ms). */
export type PeopleServices = KeyServices &
  Pick<Objects, "deliveries"> & {
    /** Has the wallet take events from the database after the response. */
    readonly takeEvents: (orgId: string) => void;
    readonly signUp: SignUpRules;
    readonly companyDomains: "off" | "approve" | "on";
    /** Null if links are shown but not sent. */
    readonly mail: SendMail | null;
    readonly isSandbox: boolean;
    readonly reachIssuer: (entry: IssuerEntry) => Promise<Result<null>>;
    /** The console's origin, such as `https://eu.example.com`. */
    readonly origin: string;
  };

/** A session as shown to its person. */
export type SessionSummary = {
  readonly id: string;
  readonly browser: string;
  readonly issuer: string;
  readonly openedAt: number;
  readonly freshAt: number;
  readonly freshBy: string;
  readonly expiresAt: number;
};

/** The caller's sessions. */
export type OwnSessions = {
  readonly id: string;
  list(): Promise<Result<readonly SessionSummary[]>>;
  /** Null for all. */
  close(id: string | null): Promise<Result<null>>;
  /** Switches to another member; null for none. */
  act(as: { readonly memberId: string; readonly orgId: string } | null): Promise<Result<null>>;
};

/** A call by a person, who may act as a member. */
export type PeopleCall = PeopleServices &
  ActingPerson & {
    readonly sessions: OwnSessions;
    /**
     * '' for the operator's issuers; otherwise the organization whose issuer was used, which limits the
     * session to it.
     */
    readonly realm: string;
    readonly tenant: string | null;
    readonly params: Readonly<Record<string, string>>;
    readonly body: unknown;
  };

/** A call by a member. */
export type MemberCall = PeopleCall & { readonly as: NonNullable<ActingPerson["as"]> };

/** Returns the actor for events. */
export function memberActor(memberId: string): Actor {
  return { kind: "member", id: memberId };
}

export type PeopleHandler<Call> = (call: Call) => Promise<Answer>;
