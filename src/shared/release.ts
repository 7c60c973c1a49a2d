/**
 * The release number, as in package.json. Above every released number while the changelog has unreleased
 * changes.
 */
export const RELEASE = "1.2.0";
