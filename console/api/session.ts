/** Who is logged in, as `/console/api/session` answers. */
export type Session = {
  readonly kind: "key" | "operator";
  readonly role: "owner" | "admin" | "billing" | "member" | "operator";
  readonly organization: {
    readonly id: string;
    readonly name: string;
    readonly slug: string;
  } | null;
  readonly key: {
    readonly id: string;
    readonly name: string;
    readonly prefix: string;
    readonly limited: boolean;
  } | null;
  readonly member: { readonly id: string } | null;
  readonly region: string;
  readonly expires_at: string;
};
