/**
 * The text for the owner of a suppression list. Each account has a suppression list; `*` is the suppression list of the
 * whole service.
 */

export const SERVICE_LIST = '*';

/** Returns a text such as `account shop`, or `the whole service (*)`. */
export function formatListOwner(list: string): string {
  return list === SERVICE_LIST ? 'the whole service (*)' : `account ${list}`;
}
