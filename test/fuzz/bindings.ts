/** Bindings of a region other than those that the tests run with; the secrets are told apart from anything else. */
export const BINDINGS = {
  REGION: "eu",
  SANDBOX: "on",
  KEY_SECRETS: `a:${"k".repeat(32)}`,
  ADMIN_TOKEN: "t".repeat(32),
  PEER_OUT_US: "o".repeat(32),
  PEER_IN_US: "i".repeat(32),
  OWN_KEY: "secret-of-the-provider",
} as const;
