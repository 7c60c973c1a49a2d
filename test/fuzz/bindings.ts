/** Bindings of another region than that of the tests, with recognizable secrets. */
export const BINDINGS = {
  REGION: "eu",
  SANDBOX: "on",
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
  PEER_OUT_US: "out-secret-".padEnd(32, "0123"),
  PEER_IN_US: "in-secret-".padEnd(32, "0123"),
  OWN_KEY: "secret-of-the-provider",
} as const;
