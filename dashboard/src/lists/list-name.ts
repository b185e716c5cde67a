/** How a suppression list is called: that of an account, or `*` of the whole service. */

export const SERVICE = '*';

/** As a sentence goes on: `account shop`, `the whole service (*)`. */
export function listName(list: string): string {
  return list === SERVICE ? 'the whole service (*)' : `account ${list}`;
}
