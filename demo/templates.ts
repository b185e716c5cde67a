/** Contains the templates of messages.ts. The HTML uses tables and inline styles, which most mail clients support. */

import type { MessageText } from './messages.ts';
import type { Random } from './random.ts';
import type { Language, Recipient } from './recipients.ts';

export interface Item {
  readonly name: string;
  readonly cents: number;
}

const ITEMS: readonly Item[] = [
  { name: 'Desk lamp “Aurora”, brass', cents: 8_900 },
  { name: 'LED bulb E27, 2,700 K, 4 pieces', cents: 1_990 },
  { name: 'Pendant “Kjøkken”, white', cents: 14_900 },
  { name: 'Clip light with cable, red', cents: 3_450 },
  { name: 'Floor lamp “Ōsaka”, oak', cents: 21_900 },
  { name: 'Dimmer, trailing edge', cents: 2_790 },
];

export function pickItem(random: Random): Item {
  return random.pick(ITEMS);
}

interface LocalizedTexts {
  readonly direction: 'ltr' | 'rtl';
  readonly greeting: string;
  readonly order: string;
  readonly orderText: string;
  readonly total: string;
  readonly reset: string;
  readonly resetText: string;
  readonly resetButton: string;
}

const LOCALIZED_TEXTS: Readonly<Record<Language, LocalizedTexts>> = {
  en: {
    direction: 'ltr',
    greeting: 'Hello',
    order: 'Your order',
    orderText: 'Thank you. We have received your order and will write to you when it is shipped.',
    total: 'Total',
    reset: 'Reset your password',
    resetText: 'A new password was requested for your account. If you did not request it, ignore this email.',
    resetButton: 'Choose a new password',
  },
  de: {
    direction: 'ltr',
    greeting: 'Guten Tag',
    order: 'Ihre Bestellung',
    orderText: 'Vielen Dank für Ihre Bestellung. Wir melden uns, sobald sie unterwegs ist.',
    total: 'Summe',
    reset: 'Passwort zurücksetzen',
    resetText: 'Für Ihr Konto wurde ein neues Passwort angefordert. Waren Sie es nicht, ist nichts zu tun.',
    resetButton: 'Neues Passwort wählen',
  },
  fr: {
    direction: 'ltr',
    greeting: 'Bonjour',
    order: 'Votre commande n°',
    orderText: 'Merci ! Nous avons bien reçu votre commande et vous écrirons à son départ.',
    total: 'Total',
    reset: 'Réinitialisez votre mot de passe',
    resetText: 'Un nouveau mot de passe a été demandé. Si ce n’était pas vous, ignorez ce message.',
    resetButton: 'Choisir un mot de passe',
  },
  ja: {
    direction: 'ltr',
    greeting: 'こんにちは、',
    order: 'ご注文の確認',
    orderText: 'ご注文ありがとうございます。発送いたしましたら、改めてお知らせいたします。',
    total: '合計',
    reset: 'パスワードの再設定',
    resetText: 'パスワード再設定のご依頼を受け付けました。お心当たりがない場合は、このメールを破棄してください。',
    resetButton: '新しいパスワードを設定する',
  },
  he: {
    direction: 'rtl',
    greeting: 'שלום',
    order: 'אישור הזמנה',
    orderText: 'תודה רבה! ההזמנה התקבלה ונעדכן אותך ברגע שהיא תצא לדרך.',
    total: 'סך הכול',
    reset: 'איפוס הסיסמה שלך',
    resetText: 'התקבלה בקשה לסיסמה חדשה עבור החשבון שלך. אם זה לא היה ביוזמתך, אפשר להתעלם מההודעה.',
    resetButton: 'בחירת סיסמה חדשה',
  },
  ar: {
    direction: 'rtl',
    greeting: 'مرحبًا',
    order: 'تأكيد الطلب',
    orderText: 'شكرًا لك! لقد استلمنا طلبك وسنخبرك عند شحنه.',
    total: 'المجموع',
    reset: 'إعادة تعيين كلمة المرور',
    resetText: 'طُلبت كلمة مرور جديدة لحسابك. إذا لم تكن أنت من طلبها فتجاهل هذه الرسالة.',
    resetButton: 'اختيار كلمة مرور جديدة',
  },
};

export function composeOrder(to: Recipient, number: number, items: readonly Item[]): MessageText {
  const { greeting, order: title, orderText } = LOCALIZED_TEXTS[to.language];
  return {
    subject: `${title} ${number}`,
    message: renderPage(to.language, `${title} ${number}`, [
      renderParagraph(`${greeting} ${to.name},`),
      renderParagraph(orderText),
      renderBill(items, LOCALIZED_TEXTS[to.language].total),
      renderButton('See your order', `https://lumen-shop.example/orders/${number}`),
    ]),
  };
}

export function composeShippingNotice(to: Recipient, number: number, days: number): MessageText {
  return {
    subject: `Your order ${number} has been shipped`,
    message: `Hello ${to.name},\n\nwe have shipped your parcel. It should arrive in ${days} working ${days === 1 ? 'day' : 'days'}.\n\nTrack it: https://parcels.example.net/track/LU${number}EX\n\nLumen, lights for people\n`,
  };
}

export function composeInvoice(to: Recipient, number: number, items: readonly Item[]): MessageText {
  const title = `Rechnung ${number} – fällig in 14 Tagen`;
  return {
    subject: title,
    message: renderPage('de', title, [
      renderParagraph(`Guten Tag ${to.name},`),
      renderParagraph(`anbei Ihre Rechnung. Bitte überweisen Sie mit dem Verwendungszweck <b>LU-${number}</b>.`),
      renderBill(items, 'Summe, inkl. 19 % USt.'),
      renderParagraph('Konto: DE02 1203 0000 0000 2020 51'),
    ]),
  };
}

export function composeReceipt(to: Recipient, number: number, cents: number): MessageText {
  return {
    subject: `Receipt #${number}: ${formatMoney(cents)} paid`,
    message: renderPage('en', 'Payment received', [
      renderParagraph(`Hello ${to.name},`),
      renderParagraph(
        `we have received <b>${formatMoney(cents)}</b> for your plan. The next payment is due in a month.`,
      ),
      renderButton('Open the receipt', `https://billing.lumen.example/receipts/${number}`),
    ]),
  };
}

export function composePasswordReset(to: Recipient, word: string): MessageText {
  const { greeting, reset: title, resetText, resetButton } = LOCALIZED_TEXTS[to.language];
  return {
    subject: title,
    message: renderPage(to.language, title, [
      renderParagraph(`${greeting} ${to.name},`),
      renderParagraph(resetText),
      renderButton(resetButton, `https://id.lumen.example/reset/${word}`),
    ]),
  };
}

export function composeSignInCode(to: Recipient, digits: string): MessageText {
  return {
    subject: `${digits} is your sign-in code`,
    message: `Hello ${to.name},\n\n${digits} is your code for id.lumen.example. The code is valid for ten minutes and can be used once.\n\nWe never ask you for this code.\n`,
  };
}

export function composeWelcome(to: Recipient): MessageText {
  return {
    subject: `Welcome, ${to.name} – please confirm your address`,
    message: renderPage('en', 'One more click', [
      renderParagraph(`Hello ${to.name},`),
      renderParagraph('please confirm that this address is yours. Your account is ready after the confirmation.'),
      renderButton('Confirm my address', 'https://id.lumen.example/confirm'),
    ]),
  };
}

function renderPage(language: Language, title: string, parts: readonly string[]): string {
  const { direction } = LOCALIZED_TEXTS[language];
  return `<!doctype html>
<html lang="${language}" dir="${direction}">
<head><meta charset="utf-8"><title>${title}</title></head>
<body style="margin:0;background:#f4f1ea;font-family:Georgia,'Times New Roman',serif;color:#2b2722">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" style="padding:24px 12px">
<table role="presentation" width="560" cellpadding="0" cellspacing="0" style="max-width:560px;background:#ffffff;border-top:6px solid #c8842a">
<tr><td style="padding:20px 32px 0;font-size:15px;letter-spacing:3px;color:#9a5f12">LUMEN</td></tr>
<tr><td style="padding:8px 32px 0"><h1 style="font-size:24px;font-weight:normal;margin:8px 0">${title}</h1></td></tr>
<tr><td style="padding:0 32px 28px;font-size:16px;line-height:1.5">
${parts.join('\n')}
</td></tr></table>
<p style="font-size:12px;color:#6d655a">Lumen Lights, 12 Example Street, Exampleton</p>
</td></tr></table>
</body>
</html>
`;
}

function renderParagraph(text: string): string {
  return `<p>${text}</p>`;
}

function renderBill(items: readonly Item[], total: string): string {
  const cellStyle = 'style="padding:6px 0;border-bottom:1px solid #e6dfd2"';
  const formatLine = ({ name, cents }: Item) =>
    `<tr><td ${cellStyle}>${name}</td><td ${cellStyle} align="right">${formatMoney(cents)}</td></tr>`;
  const totalCents = items.reduce((sum, { cents }) => sum + cents, 0);
  return `<table width="100%" cellspacing="0">${items.map(formatLine).join('')}<tr><td style="padding-top:8px"><b>${total}</b></td><td align="right" style="padding-top:8px"><b>${formatMoney(totalCents)}</b></td></tr></table>`;
}

function renderButton(text: string, link: string): string {
  return `<p style="margin:24px 0"><a href="${link}" style="background:#9a5f12;color:#ffffff;padding:12px 22px;text-decoration:none">${text}</a></p>`;
}

function formatMoney(cents: number): string {
  return `€ ${(cents / 100).toFixed(2)}`;
}
