package main

// What the customer says. The first visit tells a few facts early and asks for them when they have long left the window.
var firstVisit = []string{
	"Hello! I am Ada Okafor and I would like to plan a holiday in Portugal with my family this spring.",
	"We are four: my husband Emeka, our daughter Noor, our son Tobi and me. Noor turns seven on 12 May 2026.",
	"Tobi is three and does not forgive museums, so please none of them. A zoo or an aquarium is welcome at any time.",
	"Our budget is 3,400 euros for everything, flights included. We decided that we will not go above it.",
	"What will the weather in Lisbon be like?",
	"We could fly from Manchester on 9 May with flight TP1323, which leaves at 13:40. I have seen it for 118 euros each.",
	"We want to stay in Alfama, in an apartment with a kitchen, because Tobi eats at odd hours and wakes up very early.",
	"Emeka has hurt his knee at football, so please no steep stairs. The apartment should be on the ground floor.",
	"What will the weather in Sintra be like?",
	"On Sunday we will take the train to Sintra and see the Pena palace. The tickets are 14 euros and must be booked ahead.",
	"Noor wishes for nothing but dolphins. There is a boat trip from Setúbal at 10:00 that takes three hours.",
	"For the birthday dinner I booked a table at Taberna Sal Grosso at 19:30 under the name Okafor.",
	"How much are the tickets in Sintra?",
	"Tobi would love to ride tram 28. We heard that it is less crowded before nine, so let us do that on Monday.",
	"My sister Ngozi may join us from Porto for two days. She would come by train and sleep on the sofa.",
	"What will the weather in Porto be like?",
	"The travel insurance is paid. Its policy number is TR-88213, and the emergency line is +351 800 209 021.",
	"I think we should keep Wednesday free, without any plan at all. The children need a day on the beach at Cascais.",
	"When does Noor turn seven?",
	"My mother Grace will water the plants and feed the cat Biscuit. She has the spare key since Christmas.",
	"Emeka would like to hear fado one evening. A colleague praised the Tasca do Chico; the doors open at 20:00.",
	"What will the weather in Cascais be like?",
	"For the way back we take flight TP1326 on 16 May at 18:20, and a taxi home from Manchester, about 45 pounds.",
	"Noor has learned twenty words of Portuguese. She says obrigada to everyone, the cat included.",
	"Which flight leaves Manchester at 13:40?",
	"What is the policy number?",
}

// The next visit is another run of the program: ADK's session is new and empty.
var nextVisit = []string{
	"Hello again, it is Ada.",
	"Do you still know when Noor turns seven?",
	"And where did I book the birthday dinner?",
	"Emeka's knee is better, by the way. He has been running again since Tuesday, so stairs are fine now.",
}

// What the built-in model says when it is told something.
var advice = []string{
	"In May the days in Lisbon are long and mild, but the evenings by the river can be fresh, so a jacket is worth its " +
		"place in the suitcase. Most museums close on Mondays, and the first Sunday of the month is crowded everywhere.",
	"The hills of the old town look harmless on a map and are not. I would plan no more than two sights for a morning, " +
		"leave the hot hours for lunch and a rest, and come back out when the light turns golden and the streets fill again.",
	"Trains along the coast run every twenty minutes and need no reservation; a rechargeable card saves half the fare. " +
		"Sit on the left on the way out, for that is where the sea is, and keep the tickets until you have left the station.",
	"Restaurants fill up late, so an early table is easy to get and the kitchen has time for special wishes. Small places " +
		"often take no cards, and what stands on the table unasked, such as olives and bread, is paid for when it is eaten.",
	"For families the large aquarium in the Parque das Nações is the safest choice on a rainy day. Buy the tickets ahead, " +
		"arrive at ten, and allow three hours, with a stop at the playground between the two bridges on the way home.",
}
