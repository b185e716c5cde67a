/** The owner of a suppression list in words. Each account has a list; `*` is the list of the whole service. */

export const SERVICE_LIST = '*';

/** Returns `account shop` or `the whole service (*)`. */
export function formatListOwner(list: string): string {
  return list === SERVICE_LIST ? 'the whole service (*)' : `account ${list}`;
}
