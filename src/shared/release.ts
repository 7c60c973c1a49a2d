/** The number of this release, as in package.json. It is above every released number while the changelog has unreleased changes. */
export const RELEASE = "1.2.0";
