/** Who is logged in, as `/console/api/session` answers. */
export type Session = {
  readonly kind: "key" | "person" | "operator";
  readonly role: "owner" | "admin" | "billing" | "member" | "operator" | null;
  readonly organization: {
    readonly id: string;
    readonly name: string;
    readonly slug: string;
    readonly is_personal?: boolean;
  } | null;
  /** Of an operator alone: what of a call that several roles may make is its own. */
  readonly operator?: "read" | "support" | "finance" | "all";
  readonly person?: { readonly id: string; readonly name: string };
  readonly key: {
    readonly id: string;
    readonly name: string;
    readonly prefix: string;
    readonly limited: boolean;
  } | null;
  readonly member: { readonly id: string } | null;
  /** Each call that is not refused for who asks it; `own`: of what belongs to its member alone. */
  readonly may: Readonly<Record<string, "all" | "own">>;
  readonly region: string;
  readonly expires_at: string;
};
