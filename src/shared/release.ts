/**
 * The release number, as in package.json. It is above all released numbers while the changelog has
 * unreleased changes.
 */
export const RELEASE = "1.2.0";
