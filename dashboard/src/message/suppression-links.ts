/** Names and links of suppression lists: one for each account, and `*` for the whole service. */

export function formatSuppressionListName(list: string): string {
  return list === '*' ? 'the suppression list of the whole service' : `the suppression list of account ${list}`;
}

/** Returns the URL of the Suppressions page, filtered by the list and the address. */
export function buildSuppressionUrl(list: string, address: string): string {
  return `/suppressions?${new URLSearchParams({ list, search: address }).toString()}`;
}
