export { Access } from "./organization-access.tsx";
export { OrganizationKeys } from "./organization-keys.tsx";
export { Ledger } from "./organization-ledger.tsx";
export { OrganizationPrices } from "./organization-prices.tsx";
export { Recovery } from "./organization-recovery.tsx";
export { Webhooks } from "./organization-webhooks.tsx";
