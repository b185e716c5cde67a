/** Suppression lists: one for each account, and `*` for the whole service. */

export function nameOfList(list: string): string {
  return list === '*' ? 'the suppression list of the whole service' : `the suppression list of account ${list}`;
}

/** The page of the list, with that address looked up. */
export function addressOnList(list: string, address: string): string {
  return `/suppressions?${new URLSearchParams({ list, search: address }).toString()}`;
}
