package main

// What the customer says. The first visit tells a few facts early and asks for them when they have long left the window.
var firstVisit = []string{
	"Hello! I am Ada Okafor and I would like to plan a holiday in Portugal with my family this spring.",
	"We are four: my husband Emeka, our daughter Noor, our son Tobi and me. Noor turns seven on 12 May 2026.",
	"Please write down that I am allergic to shellfish, and badly so. One prawn and I end up in a hospital.",
	"Our budget is 3,400 euros for everything, flights included. We decided that we will not go above it.",
	"What will the weather in Lisbon be like?",
	"We could fly from Manchester on 9 May with flight TP1323, which leaves at 13:40. I have seen it for 118 euros each.",
	"We want to stay in Alfama, in an apartment with a kitchen, because Tobi eats at odd hours and wakes up very early.",
	"Emeka has hurt his knee at football, so please no steep stairs. The apartment should be on the ground floor.",
	"What will the weather in Sintra be like?",
	"On Sunday we will take the train to Sintra and see the Pena palace. The tickets are 14 euros and must be booked ahead.",
	"Noor wishes for nothing but dolphins. There is a boat trip from Setúbal at 10:00 that takes three hours.",
	"For the birthday dinner I booked a table at Taberna Sal Grosso at 19:30 under the name Okafor.",
	"What am I allergic to?",
	"Tobi would love to ride tram 28. We heard that it is less crowded before nine, so let us do that on Monday.",
	"My sister Ngozi may join us from Porto for two days. She would come by train and sleep on the sofa.",
	"What will the weather in Porto be like?",
	"The travel insurance is paid. Its policy number is TR-88213, and the emergency line is +351 800 209 021.",
	"I think we should keep Wednesday free, without any plan at all. The children need a day on the beach at Cascais.",
	"When does Noor turn seven?",
	"What is our budget for everything?",
}

// The next visit is another run of the program: ADK's session is new and empty.
var nextVisit = []string{
	"Hello again, it is Ada.",
	"Do you still know what I am allergic to?",
	"And when does Noor turn seven?",
	"What is the policy number of the travel insurance?",
	"Emeka's knee is better, by the way. He has been running again since Tuesday, so stairs are fine now.",
}
