export type Session = {
  readonly kind: "key" | "person" | "operator";
  readonly role: "owner" | "admin" | "billing" | "member" | "operator" | null;
  readonly organization: {
    readonly id: string;
    readonly name: string;
    readonly slug: string;
    readonly status: "active" | "suspended" | "closed";
    readonly is_personal?: boolean;
  } | null;
  readonly operator?: "read" | "support" | "finance" | "all";
  readonly person?: { readonly id: string; readonly name: string };
  readonly key: {
    readonly id: string;
    readonly name: string;
    readonly prefix: string;
    readonly limited: boolean;
  } | null;
  readonly member: { readonly id: string } | null;
  /** The allowed calls. `own` means only the member's own objects. */
  readonly may: Readonly<Record<string, "all" | "own">>;
  readonly region: string;
  readonly expires_at: string;
};
