/** Composes the messages of the simulated applications: plain text and HTML, in several languages and scripts. */
import type { Random } from './random.ts';
import type { Recipient } from './recipients.ts';
import {
  composeInvoice,
  composeOrder,
  composePasswordReset,
  composeReceipt,
  composeShippingNotice,
  composeSignInCode,
  composeWelcome,
  pickItem,
} from './templates.ts';

export type MessageKind =
  | 'order'
  | 'shipped'
  | 'invoice'
  | 'receipt'
  | 'reset'
  | 'code'
  | 'welcome'
  | 'reply'
  | 'sold'
  | 'relaunch';

export interface MessageText {
  readonly subject: string;
  readonly message: string;
}

/** Composes a message of the given kind for a recipient. */
export function composeMessage(kind: MessageKind, to: Recipient, random: Random): MessageText {
  const orderNumber = random.pickInteger(20_000, 99_999);
  switch (kind) {
    case 'order':
      return composeOrder(
        to,
        orderNumber,
        [pickItem(random), pickItem(random), pickItem(random)].slice(0, random.pickInteger(1, 3)),
      );
    case 'shipped':
      return composeShippingNotice(to, orderNumber, random.pickInteger(1, 4));
    case 'invoice':
      return composeInvoice(to, orderNumber, [pickItem(random), pickItem(random)]);
    case 'receipt':
      return composeReceipt(to, orderNumber, random.pickInteger(900, 12_900));
    case 'reset':
      return composePasswordReset(to, random.generateBytes(12).toString('hex'));
    case 'code':
      return composeSignInCode(to, String(random.pickInteger(100_000, 999_999)));
    case 'welcome':
      return composeWelcome(to);
    case 'reply':
      return {
        subject: `Re: ${random.pick(THREADS)}`,
        message: `Hi ${to.name},\n\n${random.pick(ANSWERS)}\n\nRead on or answer: https://community.example.org/t/${orderNumber}\n\nYou follow this thread. Stop following it: https://community.example.org/t/${orderNumber}/mute\n`,
      };
    case 'sold':
      return {
        subject: `Sold: ${pickItem(random).name}`,
        message: `Hello ${to.name},\n\nyour item has been sold. Please send it within two working days and enter the number of the parcel:\n\nhttps://market.example/sales/${orderNumber}\n\nYou receive the money after the parcel has arrived.\n`,
      };
    case 'relaunch':
      return {
        subject: 'Your account moves to the new marketplace',
        message: `Hello ${to.name},\n\nwe have taken over the accounts of the old flea market. Please confirm that you want to keep your account:\n\nhttps://market.example/keep/${orderNumber}\n\nWithout your confirmation the account is removed in 30 days.\n`,
      };
  }
}

const THREADS: readonly string[] = [
  'Which bulb for a reading lamp?',
  'Repairing a 1960s floor lamp',
  'Show us your desk',
  'Dimmer hums at 30 %',
  'E14 or E27 for the hallway?',
];
const ANSWERS: readonly string[] = [
  'Grace answered: “2,700 K, and check the width of the shade. My shade is 12 cm wide and gets warm at 9 W.”',
  'Owen answered: “I had the same problem. A trailing-edge dimmer solved it.”',
  'Maya answered: “Take a photo of the socket, then we can identify it.”',
];
